// Serves the tickets with the settings in the environment.
import process from "node:process";
import { create } from "./tickets.ts";

const { USERS = "{}", API = "https://api.example.com", HOSTS } = process.env;

// USERS is JSON, such as {"ada":{"key":"…","apiKey":"…"}}.
export default await create({ users: JSON.parse(USERS), baseUrl: API, hosts: HOSTS?.split(",") });
