"""What machines and server have in common: the problem. And where the data come from."""

from flwr.app import Context

from anechoic.data import Dataset, federate, load
from anechoic.problems import Ball, Softmax
from anechoic.records import Records

FEATURES = {"mnist": 785, "digits": 65}


def problem(context: Context) -> Softmax:
    """Return the problem: records of norm 1, ten classes."""
    return Softmax(FEATURES[str(context.run_config["data"])], Ball(20.0), bound=1.0, classes=10)


def dataset(context: Context) -> Dataset:
    """Return the public data set that stands here for what machines would keep to themselves."""
    return load(str(context.run_config["data"])).unit_norm()


def records(context: Context) -> Records:
    """Return the machine's own records: here its share of a data set, elsewhere what it reads from its own disk."""
    machines = int(context.node_config["num-partitions"])
    return federate(dataset(context).train, machines, seed=0).shard(int(context.node_config["partition-id"]))
