package io.confluent.kafka.schemaregistry.client.rest.exceptions;

/** See {@link io.confluent.kafka.schemaregistry.client.SchemaRegistryClient}. */
public class RestClientException extends Exception {}
