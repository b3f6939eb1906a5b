// The matrix products of GPT-2 124M at 4 x 256 tokens: forward, backward, head, attention.
#include "bench/kernels/Bench.h"
#include "bench/kernels/products.h"

#include <utility>

namespace ds::kernels::bench {

namespace {

std::unique_ptr<KernelCall> makeProduct(const Product &product, DType dtype) {
  const auto operand = [&](Shape shape) { return Operand({dtype, std::move(shape)}); };
  const auto shape = [&](int64_t rows, int64_t cols, bool transposed) {
    Shape matrix = transposed ? Shape{cols, rows} : Shape{rows, cols};
    if (product.batch > 1)
      matrix.insert(matrix.begin(), product.batch);
    return matrix;
  };
  std::vector<Operand> operands;
  operands.push_back(operand(shape(product.m, product.k, product.transA)));
  operands.push_back(operand(shape(product.k, product.n, product.transB)));
  operands.push_back(operand(shape(product.m, product.n, false)));
  return std::make_unique<KernelCall>("matmul", std::move(operands),
                                      Attributes{{"trans_a", int64_t(product.transA)},
                                                 {"trans_b", int64_t(product.transB)},
                                                 {"bias", int64_t(0)},
                                                 {"pieces", int64_t(workers().workers())}});
}

} // namespace

void registerMatmul() {
  for (const auto &[prefix, dtype] : {std::pair("matmul/", DType::F32), std::pair("matmul_bf16/", DType::BF16)})
    for (const Product &product : products)
      benchFlops(std::string(prefix) + product.name, flopsOf(product),
                 [product, dtype] { return makeProduct(product, dtype); });
  benchFlops("matmul_f64/1024x768x768", 2.0 * 1024 * 768 * 768,
             [] { return makeProduct({"", 1, 1024, 768, 768, false, false}, DType::F64); });
}

} // namespace ds::kernels::bench
