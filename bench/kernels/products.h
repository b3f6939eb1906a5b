//===- products.h - GPT-2 124M's matrix products --------------------------===//
#pragma once

#include <cstdint>

namespace ds::kernels::bench {

struct Product {
  const char *name;
  int64_t batch, m, n, k;
  bool transA, transB;
};

inline constexpr Product products[] = {
    {"qkv", 1, 1024, 2304, 768, false, false},
    {"attention_projection", 1, 1024, 768, 768, false, false},
    {"mlp_up", 1, 1024, 3072, 768, false, false},
    {"mlp_down", 1, 1024, 768, 3072, false, false},
    {"qkv_dx", 1, 1024, 768, 2304, false, true},
    {"mlp_up_dx", 1, 1024, 768, 3072, false, true},
    {"mlp_down_dx", 1, 1024, 3072, 768, false, true},
    {"qkv_dw", 1, 768, 2304, 1024, true, false},
    {"mlp_up_dw", 1, 768, 3072, 1024, true, false},
    {"mlp_down_dw", 1, 3072, 768, 1024, true, false},
    {"head", 1, 1024, 50257, 768, false, true},
    {"head_dx", 1, 1024, 768, 50257, false, false},
    {"head_dw", 1, 50257, 768, 1024, true, false},
    {"attention_scores", 48, 256, 256, 64, false, true},
    {"attention_scores_untransposed", 48, 256, 256, 64, false, false},
    {"attention_values", 48, 256, 64, 256, false, false},
    {"attention_dvalues", 48, 256, 64, 256, true, false},
};

constexpr double flopsOf(const Product &p) { return 2.0 * double(p.batch) * double(p.m) * double(p.n) * double(p.k); }

} // namespace ds::kernels::bench
