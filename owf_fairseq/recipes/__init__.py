"""From prepared text to a table of the paper: the ``owf`` commands that go there, in their order."""
