"""`kclient offsets-history`: `__consumer_offsets` as tables of Parquet files, and views over them."""

from kclient.spark.offsets_history.job import HistoryRun, run, watch
from kclient.spark.offsets_history.settings import OffsetsHistorySettings

__all__ = ["HistoryRun", "OffsetsHistorySettings", "run", "watch"]
