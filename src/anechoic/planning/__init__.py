"""Planning: from public quantities alone to the settings of a run, what it will cost and what else there would be."""

from anechoic.planning.costs import Costs, Limits
from anechoic.planning.options import Option, options
from anechoic.planning.rule import Choice, choose, for_shards
from anechoic.planning.situation import Situation

__all__ = ["Choice", "Costs", "Limits", "Option", "Situation", "choose", "for_shards", "options"]
