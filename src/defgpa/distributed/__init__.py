"""The same solve on a Dask cluster: shapes on the workers, the reference on the driver."""

from defgpa.distributed.alignment import DistributedAlignment, align

__all__ = ["DistributedAlignment", "align"]
