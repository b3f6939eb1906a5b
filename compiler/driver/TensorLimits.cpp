//===- TensorLimits.cpp - what tensor ranks do not go with yet --------------===//
#include "compiler/driver/TensorLimits.h"

#include "core/Error.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

using namespace ds;
using namespace ds::driver;

namespace {

struct Limit {
  bool asked;
  std::string what; // by the user's name, with its value
  std::string why;
};

std::string quoted(std::string_view key, std::string_view value) {
  return std::string(key) + " is \"" + std::string(value) + "\"";
}

} // namespace

void ds::driver::requireCutOverTensor(const CompileRequest &request, const config::Config &config) {
  if (config.tensor.size == 1)
    return;
  const std::string stay = "what such ranks hold does not leave device memory yet";
  const Limit limits[] = {
      {config.pipeline.isCut(), "deepstatic.pipeline cuts the model into stages",
       "stages do not share the norm of pieces yet"},
      {request.model.loraRank != 0, "--lora is " + std::to_string(request.model.loraRank), "adapters are not cut yet"},
      {!request.lengths.sizes.empty(), "--dim " + request.lengths.dimension + " has several sizes",
       "the pieces of one size are not found for another yet"},
      {config.optimizer.type == config::Optimizer::Type::Lamb, quoted("optimizer.type", "Lamb"),
       "norms of single parameters are not summed over pieces yet"},
      {config.ranks > 1 && !config.zero.reductionType.empty(),
       quoted("communication_data_type", config.zero.reductionType == "f16" ? "fp16" : "bf16"),
       "squares of rounded pieces are not followed to the norm yet"},
      {config.fp8 != "off", quoted("deepstatic.fp8", config.fp8), "scales of 8 bits are not shared between pieces yet"},
      {config.offloadAuto, quoted("deepstatic.offload", "auto"), stay},
      {config.cpuCheckpointing, "activation_checkpointing.cpu_checkpointing is true", stay},
      {!config.offload.empty(), "deepstatic.offload names activations", stay},
      {config.offloadParameters != "none", quoted("zero_optimization.offload_param.device", config.offloadParameters),
       stay},
      {config.offloadOptimizer != "none", quoted("zero_optimization.offload_optimizer.device", config.offloadOptimizer),
       stay},
  };
  const auto *limit = std::ranges::find_if(limits, &Limit::asked);
  if (limit != std::end(limits))
    throw Error(limit->what + ", but deepstatic.tensor_parallel.size is " + std::to_string(config.tensor.size) +
                    ", and " + limit->why,
                "--set deepstatic.tensor_parallel.size=1");
}
