"""A discrete-event model of a serving engine behind the OpenAI API."""
