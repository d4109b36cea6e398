"""Keys and values as typed columns: text, JSON, Avro, Protobuf."""

from kclient.spark.decoding.decoder import BY_INGEST, ValueDecoder, decoder_of

__all__ = ["BY_INGEST", "ValueDecoder", "decoder_of"]
