/**
 * Serves Kubernetes admission policies, written as Java functions, to the admission gateway over
 * gRPC.
 *
 * <p>A {@link dev.admissiongateway.worker.Worker} has {@linkplain
 * dev.admissiongateway.worker.Policy policies}. A policy gets a {@link
 * dev.admissiongateway.worker.Request} and its settings, and returns an {@link
 * dev.admissiongateway.worker.Answer}. {@link dev.admissiongateway.worker.Testing} calls a policy
 * without a server. README.md is the guide.
 */
package dev.admissiongateway.worker;
