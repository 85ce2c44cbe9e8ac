"""Answers the questions of people: why, top, replay control."""
