//! Record batch v2, its codecs, and the records that Kafka stores.
