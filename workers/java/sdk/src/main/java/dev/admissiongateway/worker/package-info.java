/**
 * Write a Kubernetes admission policy as a Java function; serve it to the admission gateway over
 * gRPC.
 *
 * <p>A {@link dev.admissiongateway.worker.Worker} holds {@linkplain
 * dev.admissiongateway.worker.Policy policies}. A policy is given a {@link
 * dev.admissiongateway.worker.Request} and its settings, and gives an {@link
 * dev.admissiongateway.worker.Answer}. {@link dev.admissiongateway.worker.Testing} puts requests to
 * a policy without a server. README.md is the guide.
 */
package dev.admissiongateway.worker;
