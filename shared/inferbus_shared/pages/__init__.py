"""Reading engines' metrics pages: fast, bounded, and by common names.

Pure, and shared because the metrics-collector and the router read the same pages.
"""
