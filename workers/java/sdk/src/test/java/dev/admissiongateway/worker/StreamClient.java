package dev.admissiongateway.worker;

import admission.worker.v1.WorkerOuterClass.Outcome;
import admission.worker.v1.WorkerOuterClass.PolicyCall;
import admission.worker.v1.WorkerOuterClass.ReviewStreamRequest;
import admission.worker.v1.WorkerOuterClass.ReviewStreamRequest.Cancel;
import admission.worker.v1.WorkerOuterClass.ReviewStreamRequest.RequestItem;
import admission.worker.v1.WorkerOuterClass.ReviewStreamResponse;

import com.google.protobuf.ByteString;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The client of one ReviewStream. */
final class StreamClient extends ClientCall.Listener<ReviewStreamResponse> {
    private final ClientCall<ReviewStreamRequest, ReviewStreamResponse> call;
    private final BlockingQueue<ReviewStreamResponse> batches = new LinkedBlockingQueue<>();
    private final CompletableFuture<Status> ended = new CompletableFuture<>();

    StreamClient(Channel channel) {
        this.call = channel.newCall(ServedWorker.STREAM, CallOptions.DEFAULT);
        call.start(this, new Metadata());
    }

    @Override
    public void onMessage(ReviewStreamResponse batch) {
        batches.add(batch);
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
        ended.complete(status);
    }

    StreamClient send(ReviewStreamRequest batch) {
        call.sendMessage(batch);
        return this;
    }

    StreamClient call(long id, PolicyCall.Builder policyCall) {
        return send(ReviewStreamRequest.newBuilder().addItems(item(id, policyCall)).build());
    }

    StreamClient cancel(long id) {
        RequestItem item =
                RequestItem.newBuilder().setId(id).setCancel(Cancel.getDefaultInstance()).build();
        return send(ReviewStreamRequest.newBuilder().addItems(item).build());
    }

    static RequestItem item(long id, PolicyCall.Builder policyCall) {
        return RequestItem.newBuilder().setId(id).setCall(policyCall).build();
    }

    static ByteString document(String text) {
        return ByteString.copyFromUtf8(text);
    }

    StreamClient halfClose() {
        call.halfClose();
        return this;
    }

    void cancelStream() {
        call.cancel("the test cancels the stream", null);
    }

    /** Reads the next message. */
    ReviewStreamResponse batch() throws InterruptedException {
        call.request(1);
        ReviewStreamResponse batch = batches.poll(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS);
        if (batch == null) {
            throw new AssertionError("no message arrived");
        }
        return batch;
    }

    /** The outcome in the next message, which must be its only one and have this id. */
    Outcome only(long id) throws InterruptedException {
        ReviewStreamResponse batch = batch();
        if (batch.getItemsCount() != 1 || batch.getItems(0).getId() != id) {
            throw new AssertionError("expected one outcome, of " + id + ": " + batch);
        }
        return batch.getItems(0).getOutcome();
    }

    /** The status of the stream at its end. Unread messages are dropped. */
    Status end() throws Exception {
        call.request(1_000_000);
        return ended.get(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    /** Messages that were received and not yet taken. */
    BlockingQueue<ReviewStreamResponse> batches() {
        return batches;
    }
}
