#include <eventheader/eventheader_c.h>
int main(void) {
  eh_provider* provider = eh_provider_create("Installed", "");
  eh_provider_destroy(provider);
  return provider == 0;
}
