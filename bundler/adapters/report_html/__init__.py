"""ReportWriter: one self-contained page for people, in Korean and English."""
