package io.confluent.kafka.schemaregistry.client;

/** Named by VoltDB's export to Kafka, which the lab does not use, and not on Maven Central. */
public interface SchemaRegistryClient {}
