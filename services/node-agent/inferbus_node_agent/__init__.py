"""Runs the pods of one machine as processes; survives its own death."""
