//===- CudaGraph.cpp - the end of a recording, and its launches -----------===//
#include "core/Status.h"
#include "runtime/device/RecordedRun.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/CudaQueue.h"
#include "runtime/device/cuda/CudaStatus.h"

#include <cstdint>
#include <cuda_runtime_api.h>
#include <memory>

namespace ds::runtime {
namespace {

class CudaGraph final : public RecordedRun {
public:
  CudaGraph(CudaDevice &device, cudaGraphExec_t graph, cudaStream_t stream)
      : device_(device), graph_(graph), stream_(stream) {}
  ~CudaGraph() override { (void)cudaGraphExecDestroy(graph_); }
  CudaGraph(const CudaGraph &) = delete;
  CudaGraph &operator=(const CudaGraph &) = delete;

  Status launch() noexcept override {
    device_.enter();
    const cudaError_t error = cudaGraphLaunch(graph_, stream_);
    return error == cudaSuccess ? Status::success() : cudaFailure(error, device_.rank(), "the launch of a CUDA graph");
  }

private:
  CudaDevice &device_;
  const cudaGraphExec_t graph_;
  const cudaStream_t stream_;
};

/// A failure, with what would work.
Status orWithout(const Status &status) noexcept {
  return status.ok() ? status : Status::failure("%s; DS_CUDA_GRAPH=0 leaves graphs out", status.message());
}

/// An executable graph of what was recorded; the plain one is not needed any more.
cudaError_t instantiate(cudaGraph_t graph, cudaStream_t stream, cudaGraphExec_t &executable) noexcept {
  cudaError_t error = cudaGraphInstantiate(&executable, graph, 0);
  (void)cudaGraphDestroy(graph);
  if (error == cudaSuccess)
    error = cudaGraphUpload(executable, stream); // not at the first launch
  return error;
}

} // namespace

Status CudaDevice::endRecording(std::unique_ptr<RecordedRun> &run) noexcept {
  enter();
  const cudaStream_t origin = queues_[0]->handle();
  cudaError_t error = cudaSuccess;
  for (size_t i = 1; i < queues_.size() && error == cudaSuccess; ++i)
    error = queues_[i]->leaveRecording(origin);
  // Ended in any case, so that streams are fit for use again.
  cudaGraph_t graph = nullptr;
  const cudaError_t end = cudaStreamEndCapture(origin, &graph);
  recording_ = false;
  if (const Status inside = guard_.get(); !inside.ok()) { // of a command
    guard_.forget();
    (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError(); // else it would be the next launch's
    return orWithout(inside);
  }
  error = error == cudaSuccess ? end : error;
  cudaGraphExec_t executable = nullptr;
  if (error == cudaSuccess)
    error = instantiate(graph, origin, executable);
  if (error == cudaSuccess)
    run = std::make_unique<CudaGraph>(*this, executable, origin);
  return orWithout(checked(error, "the end of a CUDA graph"));
}

} // namespace ds::runtime
