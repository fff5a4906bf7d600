"""Examination of a judge: labelled answers that ship with Rashomon, and the judge's agreement with them."""
