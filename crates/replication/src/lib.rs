//! One replica of one partition: role, epochs and high watermark.
