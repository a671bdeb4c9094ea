"""The papers' theorems as functions, one file a paper: a forecast before spending, a certificate after."""
