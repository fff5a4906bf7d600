"""Commands of several phases that are ended at random moments, repeated, and compared with an undisturbed one."""
