"""Matchers: the models that are trained, and those loaded to serve."""

from kmatch.matchers.adversarial import (
    AdversarialMatcher as AdversarialMatcher,
)
from kmatch.matchers.matcher import Matcher as Matcher
from kmatch.matchers.saved import SavedMatcher as SavedMatcher
