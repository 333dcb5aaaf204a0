package dev.admissiongateway.worker;

import admission.worker.v1.WorkerOuterClass.DescribeRequest;
import admission.worker.v1.WorkerOuterClass.DescribeResponse;
import admission.worker.v1.WorkerOuterClass.Outcome;
import admission.worker.v1.WorkerOuterClass.Phase;
import admission.worker.v1.WorkerOuterClass.PolicyCall;
import admission.worker.v1.WorkerOuterClass.ReviewRequest;
import admission.worker.v1.WorkerOuterClass.ReviewResponse;
import admission.worker.v1.WorkerOuterClass.ReviewStreamRequest;
import admission.worker.v1.WorkerOuterClass.ReviewStreamResponse;
import admission.worker.v1.WorkerOuterClass.ValidateSettingsRequest;
import admission.worker.v1.WorkerOuterClass.ValidateSettingsResponse;

import com.google.protobuf.ByteString;
import com.google.protobuf.Message;

import io.grpc.CallOptions;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.EventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.MultiThreadIoEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.nio.NioIoHandler;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioSocketChannel;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;

import java.net.UnixDomainSocketAddress;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;

/** A served worker, with a client over a real connection. */
final class ServedWorker implements AutoCloseable {
    /** Seconds after which a waiting test fails. */
    static final long TIMEOUT_SECONDS = 60;

    static final MethodDescriptor<DescribeRequest, DescribeResponse> DESCRIBE =
            method(
                    Methods.SERVICE,
                    "Describe",
                    MethodType.UNARY,
                    DescribeRequest.getDefaultInstance(),
                    DescribeResponse.getDefaultInstance());
    static final MethodDescriptor<ValidateSettingsRequest, ValidateSettingsResponse> VALIDATE =
            method(
                    Methods.SERVICE,
                    "ValidateSettings",
                    MethodType.UNARY,
                    ValidateSettingsRequest.getDefaultInstance(),
                    ValidateSettingsResponse.getDefaultInstance());
    static final MethodDescriptor<ReviewRequest, ReviewResponse> REVIEW =
            method(
                    Methods.SERVICE,
                    "Review",
                    MethodType.UNARY,
                    ReviewRequest.getDefaultInstance(),
                    ReviewResponse.getDefaultInstance());
    static final MethodDescriptor<ReviewStreamRequest, ReviewStreamResponse> STREAM =
            method(
                    Methods.SERVICE,
                    "ReviewStream",
                    MethodType.BIDI_STREAMING,
                    ReviewStreamRequest.getDefaultInstance(),
                    ReviewStreamResponse.getDefaultInstance());

    private static final EventLoopGroup LOOPS =
            new MultiThreadIoEventLoopGroup(1, Threads.named("client"), NioIoHandler.newFactory());

    private final RunningWorker running;
    private final ManagedChannel channel;

    private ServedWorker(RunningWorker running, ManagedChannel channel) {
        this.running = running;
        this.channel = channel;
    }

    static <Q extends Message, R extends Message> MethodDescriptor<Q, R> method(
            String service, String name, MethodType type, Q request, R response) {
        return MethodDescriptor.<Q, R>newBuilder()
                .setType(type)
                .setFullMethodName(MethodDescriptor.generateFullMethodName(service, name))
                .setRequestMarshaller(ProtoUtils.marshaller(request))
                .setResponseMarshaller(ProtoUtils.marshaller(response))
                .build();
    }

    static ServedWorker serve(Worker worker) throws AddressException {
        return serve(worker, Limits.defaults());
    }

    static ServedWorker serve(Worker worker, Limits limits) throws AddressException {
        RunningWorker running = worker.serve("127.0.0.1:0", limits, null);
        return new ServedWorker(running, channel(running.address()));
    }

    static ServedWorker to(String address) {
        return new ServedWorker(null, channel(address));
    }

    static ManagedChannel channel(String address) {
        return channel(address, NettyChannelBuilder::usePlaintext);
    }

    static ManagedChannel channel(String address, UnaryOperator<NettyChannelBuilder> with) {
        NettyChannelBuilder builder =
                address.startsWith("unix:")
                        ? NettyChannelBuilder.forAddress(
                                        UnixDomainSocketAddress.of(
                                                address.substring("unix:".length())))
                                .channelType(
                                        NioDomainSocketChannel.class, UnixDomainSocketAddress.class)
                        : NettyChannelBuilder.forTarget(address)
                                .channelType(NioSocketChannel.class);
        return with.apply(builder.eventLoopGroup(LOOPS).maxInboundMessageSize(Integer.MAX_VALUE))
                .build();
    }

    RunningWorker running() {
        return running;
    }

    ManagedChannel channel() {
        return channel;
    }

    DescribeResponse describe() {
        DescribeRequest request = DescribeRequest.newBuilder().setGatewayVersion("test").build();
        return ClientCalls.blockingUnaryCall(channel, DESCRIBE, withDeadline(), request);
    }

    ValidateSettingsResponse validate(String policy, String settings) {
        ValidateSettingsRequest request =
                ValidateSettingsRequest.newBuilder()
                        .setPolicy(policy)
                        .setSettings(ByteString.copyFromUtf8(settings))
                        .build();
        return ClientCalls.blockingUnaryCall(channel, VALIDATE, withDeadline(), request);
    }

    Outcome review(PolicyCall call) {
        return review(call, withDeadline());
    }

    Outcome review(PolicyCall call, CallOptions options) {
        ReviewRequest request = ReviewRequest.newBuilder().setCall(call).build();
        return ClientCalls.blockingUnaryCall(channel, REVIEW, options, request).getOutcome();
    }

    Outcome review(PolicyCall call, String traceparent) {
        Metadata headers = new Metadata();
        headers.put(Metadata.Key.of("traceparent", Metadata.ASCII_STRING_MARSHALLER), traceparent);
        headers.put(Metadata.Key.of("tracestate", Metadata.ASCII_STRING_MARSHALLER), "a=1,b=2");
        ReviewRequest request = ReviewRequest.newBuilder().setCall(call).build();
        return ClientCalls.blockingUnaryCall(
                        ClientInterceptors.intercept(
                                channel, MetadataUtils.newAttachHeadersInterceptor(headers)),
                        REVIEW,
                        withDeadline(),
                        request)
                .getOutcome();
    }

    StreamClient stream() {
        return new StreamClient(channel);
    }

    static CallOptions withDeadline() {
        return CallOptions.DEFAULT.withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    static PolicyCall.Builder call(String policy, Phase phase) {
        return PolicyCall.newBuilder()
                .setPolicy(policy)
                .setPhase(phase)
                .setSettings(ByteString.copyFromUtf8("{}"))
                .setDocument(ByteString.copyFromUtf8("{\"operation\":\"CREATE\"}"))
                .setUid("the-uid");
    }

    static PolicyCall.Builder validating(String policy) {
        return call(policy, Phase.PHASE_VALIDATING);
    }

    static PolicyCall.Builder mutating(String policy) {
        return call(policy, Phase.PHASE_MUTATING);
    }

    @Override
    public void close() throws InterruptedException {
        channel.shutdownNow().awaitTermination(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        if (running != null) {
            running.close();
        }
    }
}
