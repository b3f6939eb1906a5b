//===- TensorLimitsTest.cpp - what tensor ranks do not go with yet ----------===//
#include "compiler/driver/TensorLimits.h"

#include "core/Error.h"

#include <functional>
#include <gtest/gtest.h>
#include <string>

namespace ds::driver {
namespace {

/// Of two tensor ranks, what a request is refused for; "" where it is not.
std::string refusal(const std::function<void(CompileRequest &, config::Config &)> &ask, int64_t tensorRanks = 2) {
  CompileRequest request;
  config::Config config;
  config.tensor.size = tensorRanks;
  config.fp8 = "off";
  config.offloadOptimizer = config.offloadParameters = "none";
  ask(request, config);
  try {
    requireCutOverTensor(request, config);
  } catch (const Error &error) {
    EXPECT_EQ(error.tryLine, "--set deepstatic.tensor_parallel.size=1");
    return error.what();
  }
  return "";
}

const std::string size = ", but deepstatic.tensor_parallel.size is 2, and ",
                  stays = size + "what such ranks hold does not leave device memory yet";

TEST(TensorLimits, EachIsRefusedByName) {
  EXPECT_EQ(refusal([](CompileRequest &request, config::Config &) { request.model.loraRank = 8; }),
            "--lora is 8" + size + "adapters are not cut yet");
  EXPECT_EQ(refusal([](CompileRequest &request, config::Config &) { request.lengths = {"sequence", {16, 32}}; }),
            "--dim sequence has several sizes" + size + "the pieces of one size are not found for another yet");
  EXPECT_EQ(refusal([](CompileRequest &, config::Config &config) { config.fp8 = "block"; }),
            "deepstatic.fp8 is \"block\"" + size + "scales of 8 bits are not shared between pieces yet");
  EXPECT_EQ(
      refusal([](CompileRequest &, config::Config &config) { config.optimizer.type = config::Optimizer::Type::Lamb; }),
      "optimizer.type is \"Lamb\"" + size + "norms of single parameters are not summed over pieces yet");
  EXPECT_EQ(refusal([](CompileRequest &, config::Config &config) { config.offloadAuto = true; }),
            "deepstatic.offload is \"auto\"" + stays);
  EXPECT_EQ(refusal([](CompileRequest &, config::Config &config) { config.offload.push_back({".*", "cpu"}); }),
            "deepstatic.offload names activations" + stays);
  EXPECT_EQ(refusal([](CompileRequest &, config::Config &config) { config.offloadParameters = "cpu"; }),
            "zero_optimization.offload_param.device is \"cpu\"" + stays);
  EXPECT_EQ(refusal([](CompileRequest &, config::Config &config) { config.offloadOptimizer = "nvme"; }),
            "zero_optimization.offload_optimizer.device is \"nvme\"" + stays);
}

TEST(TensorLimits, AllElseGoes) {
  EXPECT_EQ(refusal([](CompileRequest &, config::Config &) {}), "");
  EXPECT_EQ(refusal([](CompileRequest &request, config::Config &) { request.model.loraRank = 8; }, 1), "");
}

} // namespace
} // namespace ds::driver
