"""Protocols of trainers on the service: KernelGYM and OpenEnv."""
