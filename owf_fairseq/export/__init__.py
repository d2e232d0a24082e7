"""From a checkpoint to a folder that another program serves."""
