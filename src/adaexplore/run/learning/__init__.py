"""Rules learned from failures: attempts, cases, checks and the machine they hold on."""
