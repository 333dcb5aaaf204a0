package dev.admissiongateway.worker;

import admission.worker.v1.WorkerOuterClass.DescribeRequest;
import admission.worker.v1.WorkerOuterClass.DescribeResponse;
import admission.worker.v1.WorkerOuterClass.ReviewRequest;
import admission.worker.v1.WorkerOuterClass.ReviewResponse;
import admission.worker.v1.WorkerOuterClass.ReviewStreamRequest;
import admission.worker.v1.WorkerOuterClass.ReviewStreamResponse;
import admission.worker.v1.WorkerOuterClass.ValidateSettingsRequest;
import admission.worker.v1.WorkerOuterClass.ValidateSettingsResponse;

import com.google.protobuf.Message;

import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.ProtoUtils;

import java.io.InputStream;

/**
 * The method descriptors of the contract. They are written by hand for two reasons: an unreadable
 * message is INVALID_ARGUMENT here, UNKNOWN in generated code; and the stream needs ServerCall,
 * below StreamObserver, to control how much it reads.
 */
final class Methods {
    static final String SERVICE = "admission.worker.v1.Worker";

    static final MethodDescriptor<Received<DescribeRequest>, DescribeResponse> DESCRIBE =
            method(
                    SERVICE,
                    "Describe",
                    MethodType.UNARY,
                    DescribeRequest.getDefaultInstance(),
                    DescribeResponse.getDefaultInstance());
    static final MethodDescriptor<Received<ValidateSettingsRequest>, ValidateSettingsResponse>
            VALIDATE_SETTINGS =
                    method(
                            SERVICE,
                            "ValidateSettings",
                            MethodType.UNARY,
                            ValidateSettingsRequest.getDefaultInstance(),
                            ValidateSettingsResponse.getDefaultInstance());
    static final MethodDescriptor<Received<ReviewRequest>, ReviewResponse> REVIEW =
            method(
                    SERVICE,
                    "Review",
                    MethodType.UNARY,
                    ReviewRequest.getDefaultInstance(),
                    ReviewResponse.getDefaultInstance());
    static final MethodDescriptor<Received<ReviewStreamRequest>, ReviewStreamResponse>
            REVIEW_STREAM =
                    method(
                            SERVICE,
                            "ReviewStream",
                            MethodType.BIDI_STREAMING,
                            ReviewStreamRequest.getDefaultInstance(),
                            ReviewStreamResponse.getDefaultInstance());

    private Methods() {}

    /**
     * A received message, or the error in it.
     *
     * @param message null: unreadable
     * @param error null: readable
     */
    record Received<T>(T message, String error) {}

    static <Q extends Message, R extends Message> MethodDescriptor<Received<Q>, R> method(
            String service, String name, MethodType type, Q request, R response) {
        return MethodDescriptor.<Received<Q>, R>newBuilder()
                .setType(type)
                .setFullMethodName(MethodDescriptor.generateFullMethodName(service, name))
                .setRequestMarshaller(receiving(ProtoUtils.marshaller(request)))
                .setResponseMarshaller(ProtoUtils.marshaller(response))
                .build();
    }

    private static <T> MethodDescriptor.Marshaller<Received<T>> receiving(
            MethodDescriptor.Marshaller<T> known) {
        return new MethodDescriptor.Marshaller<>() {
            @Override
            public InputStream stream(Received<T> value) {
                return known.stream(value.message());
            }

            @Override
            public Received<T> parse(InputStream stream) {
                try {
                    return new Received<>(known.parse(stream), null);
                } catch (StatusRuntimeException unreadable) {
                    return new Received<>(null, unreadable.getStatus().getDescription());
                }
            }
        };
    }
}
