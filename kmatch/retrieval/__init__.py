"""Ranking, metrics and evaluation."""

from kmatch.retrieval.evaluation import Report as Report
from kmatch.retrieval.evaluation import evaluate as evaluate
from kmatch.retrieval.measures import metrics as metrics
from kmatch.retrieval.measures import precision_recall as precision_recall
from kmatch.retrieval.ranking import Ranks as Ranks
from kmatch.retrieval.ranking import ranks as ranks
from kmatch.retrieval.ranking import ranks_both_ways as ranks_both_ways
from kmatch.retrieval.ranking import top_k as top_k
