package io.confluent.kafka.schemaregistry.client;

/** See {@link SchemaRegistryClient}. */
public class CachedSchemaRegistryClient implements SchemaRegistryClient {}
