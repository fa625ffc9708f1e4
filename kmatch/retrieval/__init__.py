"""Ranking, metrics and evaluation."""

from kmatch.retrieval.bootstrap import Difference as Difference
from kmatch.retrieval.bootstrap import Interval as Interval
from kmatch.retrieval.evaluation import evaluate as evaluate
from kmatch.retrieval.measures import metrics as metrics
from kmatch.retrieval.measures import precision_recall as precision_recall
from kmatch.retrieval.papers import published as published
from kmatch.retrieval.protocols import PROTOCOLS as PROTOCOLS
from kmatch.retrieval.ranking import Ranks as Ranks
from kmatch.retrieval.ranking import ranks as ranks
from kmatch.retrieval.ranking import ranks_both_ways as ranks_both_ways
from kmatch.retrieval.ranking import top_k as top_k
from kmatch.retrieval.results import Comparison as Comparison
from kmatch.retrieval.results import Report as Report
