"""Judging on the devices of a Ray cluster, behind the same Protocol as on this machine."""
