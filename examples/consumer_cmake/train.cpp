// A project outside thinwire's tree: fits a small network to a random teacher, on as many ranks as it is started with.
#include <torch/torch.h>

#include <iostream>

#include "thinwire/thinwire.hpp"

int main() try {
  auto world = thinwire::init_from_env();
  torch::manual_seed(1 + world->rank());
  torch::nn::Sequential model(torch::nn::Linear(32, 64), torch::nn::Tanh(), torch::nn::Linear(64, 1));
  thinwire::DataParallel parallel(*model, *world, {.codec = "int4"});
  thinwire::AdamW optimizer(parallel, {.lr = 1e-2});
  const torch::Tensor teacher = torch::linspace(-1, 1, 32).unsqueeze(1);
  for (int step = 0; step < 100; ++step) {
    const torch::Tensor x = torch::randn({64, 32});
    const torch::Tensor loss = torch::mse_loss(model->forward(x), torch::tanh(x.matmul(teacher)));
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    if (world->rank() == 0 && (step + 1) % 20 == 0)
      std::cout << "step " << step + 1 << " loss " << loss.item<float>() << '\n';
  }
  return 0;
} catch (const thinwire::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
