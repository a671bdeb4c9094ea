"""Labels and worker skills from the answers of a crowd, without any truth.

Workers who agree with others are right more often: agreement between workers is a rank-one matrix of their skills,
seen where they share items. Completing it gives a start; a Dawid-Skene model with learned shrinkage gives the
labels, and which model (vote, one coin, confusion matrices) the answers themselves decide.
"""

from entrywise.apply.crowd.agreement import agreement_skills
from entrywise.apply.crowd.consensus import Consensus, consensus
from entrywise.apply.crowd.crowd import CrowdLabels, crowd
from entrywise.apply.crowd.majority_vote import majority_vote
from entrywise.apply.crowd.next_labels import NextLabels, next_labels

__all__ = [
    "Consensus",
    "CrowdLabels",
    "NextLabels",
    "agreement_skills",
    "consensus",
    "crowd",
    "majority_vote",
    "next_labels",
]
