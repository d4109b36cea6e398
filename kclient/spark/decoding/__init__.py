"""Keys and values as typed columns: text, JSON, Avro, Protobuf.

Spec: spark section 8.
"""

from kclient.spark.decoding.choosing import decoder_of
from kclient.spark.decoding.decoder import Decoder

__all__ = ["Decoder", "decoder_of"]
