import { Client } from "./discreet.js";
