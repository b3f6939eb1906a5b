//===- OptimizerSettings.cpp - AdamW, Adam, SGD, Adagrad, Lion, Lamb ------===//
#include "compiler/config/Config.h"
#include "compiler/config/Hjson.h"
#include "compiler/config/KeyRules.h"
#include "compiler/config/Resolver.h"
#include <string>
#include <string_view>

namespace ds::config {
namespace {

constexpr double highest = 1e300; // any finite number that is no sentinel

/// A parameter of at least 0.
double read(Resolver &resolver, std::string_view path) {
  const double value = resolver.numberOrDefault(path);
  if (!(value >= 0 && value <= highest))
    resolver.refuse(path, "it must be from 0 to 1e300");
  return value;
}

void readBetas(Resolver &resolver, Optimizer &optimizer) {
  static constexpr std::string_view path = "optimizer.params.betas";
  const Node *written = resolver.find(path);
  const Node betas = written && written->kind == Node::Kind::Array ? *written : resolver.defaultOf(path);
  const auto isBeta = [](const Node &node) {
    return (node.kind == Node::Kind::Int || node.kind == Node::Kind::Float) && node.number >= 0 && node.number < 1;
  };
  if (betas.items.size() != 2 || !isBeta(betas.items[0]) || !isBeta(betas.items[1]))
    return resolver.refuse(path, "it must be two numbers in [0, 1), e.g. [0.9, 0.999]");
  optimizer.beta1 = betas.items[0].number;
  optimizer.beta2 = betas.items[1].number;
}

void readAdam(Resolver &resolver, Optimizer &optimizer, bool adamW) {
  optimizer.type = Optimizer::Type::AdamW;
  readBetas(resolver, optimizer);
  optimizer.epsilon = read(resolver, "optimizer.params.eps");
  optimizer.adamWMode = resolver.booleanOrDefault("optimizer.params.adam_w_mode");
  if (adamW && !optimizer.adamWMode)
    resolver.refuse("optimizer.params.adam_w_mode",
                    "AdamW always keeps weight decay out of the moments; write optimizer.type \"Adam\" for the other");
}

void readSgd(Resolver &resolver, Optimizer &optimizer) {
  optimizer.type = Optimizer::Type::Sgd;
  optimizer.momentum = read(resolver, "optimizer.params.momentum");
  optimizer.nesterov = resolver.booleanOrDefault("optimizer.params.nesterov");
  if (optimizer.nesterov && optimizer.momentum == 0)
    resolver.refuse("optimizer.params.nesterov", "Nesterov's momentum needs optimizer.params.momentum above 0");
}

void readAdagrad(Resolver &resolver, Optimizer &optimizer) {
  optimizer.type = Optimizer::Type::Adagrad;
  optimizer.epsilon = read(resolver, "optimizer.params.eps");
  optimizer.lrDecay = read(resolver, "optimizer.params.lr_decay");
}

void readLion(Resolver &resolver, Optimizer &optimizer) {
  optimizer.type = Optimizer::Type::Lion;
  readBetas(resolver, optimizer);
}

std::string valueAt(const Resolver &resolver, std::string_view path) {
  const Node *written = resolver.find(path);
  return toJson(written ? *written : resolver.defaultOf(path));
}

void readLamb(Resolver &resolver, Optimizer &optimizer) {
  static constexpr std::string_view least = "optimizer.params.min_coeff", most = "optimizer.params.max_coeff";
  optimizer.type = Optimizer::Type::Lamb;
  readBetas(resolver, optimizer);
  optimizer.epsilon = read(resolver, "optimizer.params.eps");
  optimizer.maxCoeff = read(resolver, most);
  optimizer.minCoeff = read(resolver, least);
  optimizer.biasCorrection = resolver.booleanOrDefault("optimizer.params.bias_correction");
  if (optimizer.minCoeff > optimizer.maxCoeff)
    resolver.refuse(least, "it must be at most " + std::string(most) + ", which is " + valueAt(resolver, most));
  if (const std::string_view stage = "zero_optimization.stage"; resolver.integerOrDefault(stage) > 0)
    resolver.refuse(stage,
                    "Lamb's trust ratio is of whole parameters, and stages 1 to 3 give each rank slices of them; write "
                    "0, or another optimizer.type",
                    "--set zero_optimization.stage=0");
}

} // namespace

void resolveOptimizer(Resolver &resolver, Config &config) {
  static constexpr std::string_view path = "optimizer.type";
  const auto type = resolver.string(path);
  if (!type) { // none, or refused for what stands there
    if (resolver.find("optimizer.params") && !resolver.find(path))
      resolver.refuseWhole(std::string(missingOptimizer), "--set optimizer.type=AdamW");
    return;
  }
  const auto known = availableOptimizer(*type);
  if (!known)
    return resolver.refuse(path, "this optimizer is not available; AdamW, Adam, SGD, Adagrad, Lion and Lamb are");
  if (*known == "SGD")
    readSgd(resolver, config.optimizer);
  else if (*known == "Adagrad")
    readAdagrad(resolver, config.optimizer);
  else if (*known == "Lion")
    readLion(resolver, config.optimizer);
  else if (*known == "Lamb")
    readLamb(resolver, config.optimizer);
  else
    readAdam(resolver, config.optimizer, *known == "AdamW");
  config.optimizer.lr = read(resolver, "optimizer.params.lr");
  config.optimizer.weightDecay = read(resolver, "optimizer.params.weight_decay");
}

} // namespace ds::config
