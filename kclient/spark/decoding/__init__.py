"""Keys and values as typed columns: text, JSON, Avro, Protobuf."""

from kclient.spark.decoding.choosing import BY_INGEST, decoder_of
from kclient.spark.decoding.decoder import Decoder

__all__ = ["BY_INGEST", "Decoder", "decoder_of"]
