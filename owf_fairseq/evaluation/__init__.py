"""Quality and speed of translations: metrics, significance, decoding speed."""
