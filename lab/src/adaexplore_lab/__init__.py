"""Research tools around AdaExplore: simulation, task synthesis, rule candidates, lift, replay."""
