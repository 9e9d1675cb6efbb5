import { createApp } from "vue";
import InvoiceTotal from "./components/InvoiceTotal.vue";

export const app = createApp({});

app.component("invoice-total", InvoiceTotal).mount("#app");
