"""The application of Rashomon: runs, stores, displays, compares and exports."""
