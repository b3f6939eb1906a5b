//===- CudaQueue.cpp - a queue that is a stream ---------------------------===//
#include "runtime/device/cuda/CudaQueue.h"

#include "core/Status.h"
#include "runtime/device/Event.h"
#include "runtime/device/HostThreadQueue.h"
#include "runtime/device/Queue.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/CudaEvent.h"
#include "runtime/device/cuda/CudaStatus.h"

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <mutex>

namespace ds::runtime {

CudaQueue::CudaQueue(CudaDevice &device, const QueueOptions &options)
    : HostThreadQueue(device, device.guard(), options), device_(device), place_("queue " + options.name) {
  device.enter();
  // Non-blocking: nothing orders it with the default stream, which nobody here uses.
  throwIfError(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), place_);
  throwIfError(cudaEventCreateWithFlags(&left_, cudaEventDisableTiming), place_);
  stream_ = {.handle = handle_, .step = device.deviceStep(), .refused = device.refusedOnDevice()};
  device.addQueue(*this);
  start();
}

CudaQueue::~CudaQueue() {
  stop();
  device_.removeQueue(*this);
  (void)cudaEventDestroy(left_);
  (void)cudaStreamDestroy(handle_);
}

void CudaQueue::enter() noexcept { device_.enter(); }

/// The threads of a recording write into one graph, which CUDA does not guard.
std::unique_lock<std::mutex> CudaQueue::turn() noexcept { return device_.turnOfRecording(); }

void CudaQueue::finish() noexcept {
  HostThreadQueue::finish();
  if (!device_.isRecording())
    orFail(device_.awaitStream(handle_, patience()));
}

Status CudaQueue::wait(Event &event, uint64_t value) noexcept {
  auto &awaited = static_cast<CudaEvent &>(event);
  if (!awaited.awaitRecord(value))
    return Status::success(); // what follows is dropped
  const auto mine = turn();
  return checked(awaited.holdBack(value, handle_));
}

Status CudaQueue::signal(Event &event, uint64_t value) noexcept {
  return checked(static_cast<CudaEvent &>(event).record(value, handle_));
}

void CudaQueue::fill(void *target, uint8_t value, uint64_t bytes) noexcept {
  if (bytes > 0)
    orFail(cudaMemsetAsync(target, value, bytes, handle_));
}

Status CudaQueue::copy(void *target, const void *source, uint64_t bytes) noexcept {
  if (bytes == 0 || target == source)
    return Status::success();
  return checked(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, handle_));
}

Status CudaQueue::look(const std::byte *&bytes, uint64_t count) noexcept {
  if (const Status status = checked(cudaStreamSynchronize(handle_)); !status.ok() || count == 0)
    return status;
  seen_.resize(std::max<size_t>(seen_.size(), count));
  const cudaError_t error = cudaMemcpyAsync(seen_.data(), bytes, count, cudaMemcpyDefault, handle_);
  bytes = seen_.data();
  return checked(error == cudaSuccess ? cudaStreamSynchronize(handle_) : error);
}

cudaError_t CudaQueue::leaveRecording(cudaStream_t origin) noexcept {
  const cudaError_t error = cudaEventRecord(left_, handle_);
  return error == cudaSuccess ? cudaStreamWaitEvent(origin, left_, 0) : error;
}

Status CudaQueue::checked(cudaError_t error) const noexcept {
  if (error == cudaSuccess)
    return Status::success();
  (void)cudaGetLastError(); // else it would be the next launch's
  return cudaFailure(error, device_.rank(), place_.c_str());
}

void CudaQueue::orFail(cudaError_t error) noexcept {
  if (error != cudaSuccess)
    device_.fail(checked(error));
}

} // namespace ds::runtime
