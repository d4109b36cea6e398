"""Values whose new fields cost more than their bytes, decoded as `--on-new-field rescue` does."""

from __future__ import annotations

from kclient.spark.decoding.protobuf_new_fields import new_fields_of
from tests.spark.test_decoding_protobuf import message_class, one


def fields_of_a_wide_message(count: int) -> int:
    """How many new fields have a name, of a message with very many."""
    fields = [(f"f{number}", "int32") for number in range(count)]
    writer = message_class([one(("a", "int32"), *fields)], "p.M")
    value = writer(a=1, **{name: 1 for name, _ in fields}).SerializeToString()
    reader = message_class([one(("a", "int32"))], "p.M")
    return new_fields_of(reader.FromString(value), writer.DESCRIPTOR).count('"f')
