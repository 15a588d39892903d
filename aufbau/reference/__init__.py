"""The reference evaluator and its correspondence with the engine."""

from aufbau.reference.evaluator import Finding, Reading, Reference
from aufbau.reference.evidence import OutOfSteps

__all__ = ["Finding", "OutOfSteps", "Reading", "Reference"]
