//===- CudaHostQueue.cpp - a queue beside a GPU's streams -------------------===//
#include "runtime/device/cuda/CudaHostQueue.h"

#include "core/Status.h"
#include "runtime/device/Event.h"
#include "runtime/device/Queue.h"
#include "runtime/device/cpu/ProcessorQueue.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/CudaEvent.h"
#include "runtime/device/cuda/CudaStatus.h"

#include <cstdint>
#include <cuda_runtime_api.h>

namespace ds::runtime {

CudaHostQueue::CudaHostQueue(CudaDevice &device, const QueueOptions &options)
    : ProcessorQueue(device, device.guard(), device.nvme(), options), device_(device), place_("queue " + options.name) {
  device.enter();
  throwIfError(cudaStreamCreateWithFlags(&waits_, cudaStreamNonBlocking), place_);
  start();
}

CudaHostQueue::~CudaHostQueue() {
  stop();
  (void)cudaStreamDestroy(waits_);
}

void CudaHostQueue::enter() noexcept { device_.enter(); }

Status CudaHostQueue::wait(Event &event, uint64_t value) noexcept {
  auto &awaited = static_cast<CudaEvent &>(event);
  if (!awaited.awaitRecord(value))
    return Status::success(); // what follows is dropped
  cudaError_t error = awaited.holdBack(value, waits_);
  if (error == cudaSuccess)
    error = device_.awaitStream(waits_, patience());
  if (error == cudaSuccess || device_.guard().failed())
    return Status::success();
  (void)cudaGetLastError(); // else it would be the next call's
  return cudaFailure(error, device_.rank(), place_.c_str());
}

Status CudaHostQueue::signal(Event &event, uint64_t value) noexcept {
  static_cast<CudaEvent &>(event).raise(value);
  return Status::success();
}

} // namespace ds::runtime
