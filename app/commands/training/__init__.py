"""Commands that train: training, train, trainings and learning-curve."""
