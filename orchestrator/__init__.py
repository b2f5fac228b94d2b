"""Retry and recovery for chat turns over coding agents."""
