//===- CallRules.cpp - kernels' own checks of their calls -----------------===//
#include "compiler/check/meaning/CallRules.h"

#include "compiler/check/meaning/Mismatch.h"
#include "core/Error.h"
#include "kernels/WidenedCall.h"
#include "kernels/attention/attention_call.h"
#include "kernels/clip/clip_factor_call.h"
#include "kernels/clip/global_norm_call.h"
#include "kernels/conv/conv_call.h"
#include "kernels/conv/pool_call.h"
#include "kernels/elementwise/elementwise_call.h"
#include "kernels/index/gather_call.h"
#include "kernels/index/scatter_elements_call.h"
#include "kernels/index/search_call.h"
#include "kernels/matmul/linear_weight_grad_call.h"
#include "kernels/matmul/matmul_call.h"
#include "kernels/movement/movement_call.h"
#include "kernels/norm/batch_norm_call.h"
#include "kernels/norm/layer_norm_call.h"
#include "kernels/norm/rms_norm_call.h"
#include "kernels/optimizer/adagrad_call.h"
#include "kernels/optimizer/adamw_call.h"
#include "kernels/optimizer/cycled_momentum_call.h"
#include "kernels/optimizer/lamb_call.h"
#include "kernels/optimizer/learning_rate_call.h"
#include "kernels/optimizer/lion_call.h"
#include "kernels/optimizer/sgd_call.h"
#include "kernels/random/dropout_call.h"
#include "kernels/random/uniform_call.h"
#include "kernels/reduce/reduce_call.h"
#include "kernels/reduce/softmax_call.h"
#include "runtime/plan/Invocations.h"

#include <string>
#include <string_view>

namespace ds::check {

namespace {

using kernels::Call;

struct CallCheck {
  std::string_view kernel;
  void (*check)(const Call &call, kernels::Device device);
};

template <typename CallT> void make(const Call &call, kernels::Device) { (void)CallT(call); }
template <typename CallT> void makeOn(const Call &call, kernels::Device device) { (void)CallT(call, device); }

/// What kernels check beyond their rows. A kernel that is not here has no such check in a file of its own.
constexpr CallCheck callChecks[] = {
    {"elementwise", make<kernels::ElementwiseCall>},
    {"matmul", make<kernels::MatmulCall>},
    {"linear_weight_grad", make<kernels::LinearWeightGradCall>},
    {"attention", make<kernels::AttentionCall>},
    {"attention_grad", make<kernels::AttentionCall>},
    {"packed_attention", make<kernels::AttentionCall>},
    {"packed_attention_grad", make<kernels::AttentionCall>},
    {"transpose", make<kernels::TransposeCall>},
    {"slice", make<kernels::SliceCall>},
    {"pad", make<kernels::PadCall>},
    {"concat", make<kernels::ConcatCall>},
    {"reduce_sum", [](const Call &call, kernels::Device) { (void)kernels::ReduceCall(call, kernels::Reduction::Sum); }},
    {"reduce_mean",
     [](const Call &call, kernels::Device) { (void)kernels::ReduceCall(call, kernels::Reduction::Mean); }},
    {"reduce_max", [](const Call &call, kernels::Device) { (void)kernels::ReduceCall(call, kernels::Reduction::Max); }},
    {"softmax", [](const Call &call, kernels::Device) { (void)kernels::SoftmaxCall(call, "softmax"); }},
    {"softmax_grad", [](const Call &call, kernels::Device) { (void)kernels::SoftmaxCall(call, "softmax_grad"); }},
    {"log_softmax", [](const Call &call, kernels::Device) { (void)kernels::SoftmaxCall(call, "log_softmax"); }},
    {"log_softmax_grad",
     [](const Call &call, kernels::Device) { (void)kernels::SoftmaxCall(call, "log_softmax_grad"); }},
    {"layer_norm", make<kernels::LayerNormCall>},
    {"layer_norm_grad", makeOn<kernels::LayerNormGradCall>},
    {"rms_norm", make<kernels::RmsNormCall>},
    {"rms_norm_grad", makeOn<kernels::RmsNormGradCall>},
    {"batch_norm", make<kernels::BatchNormCall>},
    {"batch_norm_grad", make<kernels::BatchNormCall>},
    {"conv", make<kernels::ConvForwardCall>},
    {"conv_input_grad", make<kernels::ConvInputGradCall>},
    {"conv_weight_grad", make<kernels::ConvWeightGradCall>},
    {"max_pool", [](const Call &call, kernels::Device) { (void)kernels::PoolCall(call, "x", "y"); }},
    {"average_pool", [](const Call &call, kernels::Device) { (void)kernels::PoolCall(call, "x", "y"); }},
    {"max_pool_grad", [](const Call &call, kernels::Device) { (void)kernels::PoolCall(call, "dx", "dy"); }},
    {"average_pool_grad", [](const Call &call, kernels::Device) { (void)kernels::PoolCall(call, "dx", "dy"); }},
    {"gather", [](const Call &call, kernels::Device) { (void)kernels::GatherCall(call, "data", "y"); }},
    {"gather_grad", [](const Call &call, kernels::Device) { (void)kernels::GatherCall(call, "ddata", "dy"); }},
    {"gather_elements", [](const Call &call, kernels::Device) { (void)kernels::ElementIndex(call); }},
    {"scatter_elements", make<kernels::ScatterElementsCall>},
    {"arg_max", make<kernels::ArgMaxCall>},
    {"top_k", make<kernels::TopKCall>},
    {"cumsum", make<kernels::CumSumCall>},
    {"dropout", make<kernels::DropoutCall>},
    {"uniform", make<kernels::UniformCall>},
    {"adamw", make<kernels::AdamWCall>},
    {"sgd", make<kernels::SgdCall>},
    {"lion", make<kernels::LionCall>},
    {"lamb", make<kernels::LambCall>},
    {"adagrad", make<kernels::AdagradCall>},
    {"block_sum_squares", make<kernels::BlockSumSquaresCall>},
    {"global_norm", make<kernels::GlobalNormCall>},
    {"clip_factor", make<kernels::ClipFactorCall>},
    {"learning_rate", make<kernels::LearningRateCall>},
    {"cycled_momentum", make<kernels::CycledMomentumCall>}};

void requireCall(const proto::KernelCommand &kernel, kernels::Device device) {
  const kernels::Invocation invocation = plan::invocationOf(kernel);
  const Call call(invocation);
  if (device == kernels::Device::Cpu && kernels::isWidened(invocation))
    return; // the kernel gets float32 copies, and the workspace that they leave
  for (const CallCheck &one : callChecks)
    if (one.kernel == kernel.kernel())
      one.check(call, device);
}

} // namespace

void requireCalls(const proto::Plan &plan) {
  const kernels::Device device = plan.machine().device() == "cuda" ? kernels::Device::Cuda : kernels::Device::Cpu;
  for (const proto::Role &role : plan.roles())
    for (const proto::Routine &routine : role.routines())
      for (int i = 0; i < routine.commands_size(); ++i)
        try {
          if (routine.commands(i).has_kernel())
            requireCall(routine.commands(i).kernel(), device);
        } catch (const Error &error) {
          throw Mismatch{"role " + role.name() + ", routine " + routine.name() + ", command " + std::to_string(i) +
                         ": " + error.what()};
        }
}

} // namespace ds::check
